"""The kinds as typed, frozen values, field by field as the public APIs name them. Pure."""
