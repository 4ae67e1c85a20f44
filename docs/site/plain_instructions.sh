#!/bin/sh
# Doxygen takes `::cta.tile` behind a word that begins with a digit, as in `2d.shared::cta.tile`, for a link that it cannot
# find. A zero-width space between the colons says that it is none.
exec sed "/^\/\/\/ .*tensor[.][1-5]d[.]/s/::/:​:/g" "$1"
