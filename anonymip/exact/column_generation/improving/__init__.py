"""Better releases while a proof goes on."""
