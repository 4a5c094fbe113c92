# The ledger names an item that the plan does not have: refused.
start
lines 1 3 >a.txt
base
echo more >>a.txt
by P9
#! P9
