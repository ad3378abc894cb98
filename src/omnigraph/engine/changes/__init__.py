"""What changed: between two targets, in one commit, of one entity, along a branch."""
