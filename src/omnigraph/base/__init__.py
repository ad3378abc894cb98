"""What every room may use: errors, ids, clock, failpoints. Imports nothing of ours."""
