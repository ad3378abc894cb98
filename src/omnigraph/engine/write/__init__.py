"""From changes to a write plan: checked against the catalog, staged against one view."""
