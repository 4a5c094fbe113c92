# A net change that is binary was made by everyone who changed the content on the way, also from
# text to text: no line would show their part.
start
printf '\0bin\n' >was
printf 'text\n' >becomes
printf 'text\n' >three
printf '\0bin\n' >gone
printf '\0bin\n' >again
printf '\0one\n%s\n' "$(lines 1 60)" >old-name
base
for f in was gone again; do echo text >$f; done
echo second >>becomes
echo second >>three
by P1
for f in was gone again becomes; do echo foreign >>$f; done
echo foreign >new
by nobody
echo third >>three
by P2
rm gone again
by P1
printf 'more\0\n' >>becomes
printf 'more\0\n' >>three
printf 'more\0\n' >>new
printf '\0again\n' >again
by P1
lines 1 60 >old-name
by P1
git mv old-name new-name
lines 0 60 >new-name
by nobody
printf '\0one\n%s\nend\n' "$(lines 1 60)" >new-name
by P2
#= unplanned(P1) again binary unplanned
#= unplanned(P1) becomes binary unplanned
#= unplanned(P1) gone binary unplanned
#= unplanned(P1) new binary unplanned
#= unplanned(P1,P2) old-name -> new-name binary+rename unplanned
#= ambiguous(P1,P2) three binary ambiguous
#= unplanned(P1) was binary unplanned
