# aimport os
