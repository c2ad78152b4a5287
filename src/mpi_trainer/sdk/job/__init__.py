"""One job in the user's hands: description, state, logs, waiting."""
