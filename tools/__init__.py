"""Tools for working on the product: none of them is shipped with it."""
