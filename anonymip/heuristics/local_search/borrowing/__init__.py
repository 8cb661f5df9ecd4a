"""Windows of classes whose rows may borrow copies from elsewhere."""
