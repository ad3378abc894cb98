"""What Spark executors run: they stage files and cannot publish (no import of manifest, commit or engine)."""
