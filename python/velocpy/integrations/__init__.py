"""Parts that plug into the trainers of other libraries; nothing but their own module imports such a library."""
