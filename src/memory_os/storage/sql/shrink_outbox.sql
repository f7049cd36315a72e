SELECT shrink_outbox() AS shrunk
