"""Parts that plug into the trainers of other libraries; each module needs its library and nothing else imports it."""
