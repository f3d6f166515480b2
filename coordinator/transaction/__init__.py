"""The transaction coordinator: which transactional id has which producer, and how far its transaction is."""
