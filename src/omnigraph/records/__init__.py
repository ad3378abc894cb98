"""Between JSON and Arrow."""
