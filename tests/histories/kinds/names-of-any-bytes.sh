# Names with spaces, quotes, tabs, pathspec magic, and bytes that are no UTF-8.
start
base
for name in 'a b' 'q"uote' $'t\tab' ':(top)x' '*.c' $'\xff\xfe' $'\xc3\xa4' '-dash' 'new
line'; do
  echo "in it" >"./$name"
done
by nobody
#= unplanned *.c +1 "in it\n" unplanned
#= unplanned -dash +1 "in it\n" unplanned
#= unplanned :(top)x +1 "in it\n" unplanned
#= unplanned a b +1 "in it\n" unplanned
#= unplanned new\nline +1 "in it\n" unplanned
#= unplanned q"uote +1 "in it\n" unplanned
#= unplanned t	ab +1 "in it\n" unplanned
#= unplanned ä +1 "in it\n" unplanned
#= unplanned base64://4= +1 "in it\n" unplanned
