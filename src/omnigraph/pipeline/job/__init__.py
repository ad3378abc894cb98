"""Jobs that `pipeline.yaml` describes: sources, Spark SQL, mappings, rules, one load, a report."""
