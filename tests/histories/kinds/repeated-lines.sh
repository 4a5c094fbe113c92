# Histogram and the steps pair equal lines otherwise: what git's diff leaves unchanged is not shown,
# and each shown line has its commits.
start
printf '}\n\n}\n\n' >a.rs
base
printf '}\n\n}\n\n}\n\n' >a.rs
by P1
printf '{\n}\n\n}\n\n}\n\n' >a.rs
by P2
#= P2 a.rs +1 "{\n" in
#= P1 a.rs +2 "}\n\n" in #realigned
