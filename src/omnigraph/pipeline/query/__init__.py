"""Read queries on Spark: the steps of a plan as DataFrames, for graphs that one machine does not hold."""
