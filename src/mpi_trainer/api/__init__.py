"""The kinds we serve as typed, frozen values: fields, defaults, syntax and validation. Pure."""
