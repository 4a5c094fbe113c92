# Made executable, made plain again by another, and a new executable file.
start
echo one >flip
echo two >stays
base
chmod +x flip stays
by P1
chmod -x flip
by P2
echo run >new
chmod +x new
by nobody
#= unplanned new mode unplanned #executable
#= unplanned new +1 "run\n" unplanned
#= P1 stays mode in #executable
