# Empty files: added, removed, filled, emptied; never taken for a rename of each other.
start
: >gone
: >filled
echo text >emptied
base
: >new
by P1
rm gone
by P2
echo text >filled
: >emptied
by P3
#= P3 emptied -1 "text\n" in
#= P3 filled +1 "text\n" in
#= P2 gone empty in
#= P1 new empty in
