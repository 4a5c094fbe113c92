# Where the final diff takes a file for binary, its one segment stands for every commit that changed
# the content, also for those that changed lines while it was text.
start
printf 'a\0b\n' >to-text
echo text >to-binary
echo text >by-two
printf 'a\0b\n' >deleted
printf 'a\0b\n' >renamed
echo text >and-back
base
echo text >to-text
echo text >deleted
printf 'a\0c\n' >renamed
printf 'b\0' >and-back
by P1
printf 'text\nmore\n' >to-text
printf 'text\nmore\n' >to-binary
commit_all "a stranger"
printf 'text\nmore\n' >by-two
printf 'text\nmore\n' >deleted
by P2
printf 'text\nmore\0\n' >to-binary
printf 'text\nmore\0\n' >by-two
git mv renamed new-name
printf 'text\nmore\n' >and-back
git rm -q deleted
by P1
#= P1 and-back +2 "more\n" in
#= ambiguous(P1,P2) by-two binary ambiguous
#= ambiguous(P1,P2) deleted binary ambiguous
#= P1 new-name binary in
#= P1 renamed binary in
#= unplanned(P1) to-binary binary unplanned
#= unplanned(P1) to-text binary unplanned
