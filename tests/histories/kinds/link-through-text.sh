# The target of a link and an empty file are wholes as well: who edited them while they were text
# is among those who made them.
start
ln -s first link
ln -s first same
base
rm link same
printf plain >link
printf plain >same
: >empty
by P1
printf evil >link
printf evil >same
printf evil >empty
by nobody
rm link same
ln -s evil link
ln -s other same
: >empty
by P1
#= unplanned(P1) empty empty unplanned
#= unplanned(P1) link symlink -"first" +"evil" unplanned #symlink-target
#= unplanned(P1) same symlink -"first" +"other" unplanned #symlink-target
