# Head is base.
start
lines 1 3 >a.txt
base
