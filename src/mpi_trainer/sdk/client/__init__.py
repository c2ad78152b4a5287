"""The jobs of a namespace by name, and which cluster or machine they are on."""
