# A link is added, aimed elsewhere, removed, and turned into a file and back. Its target is never
# text.
start
echo text >file
ln -s a added-later-gone
ln -s a aimed
ln -s a to-file
echo text >to-link
base
ln -sf b aimed
ln -s ../out new
by P1
rm added-later-gone to-file to-link
echo 'a' >to-file
ln -s text to-link
by P2
#= P2 added-later-gone symlink -"a" in #symlink-target
#= P1 aimed symlink -"a" +"b" in #symlink-target
#= P1 new symlink +"../out" in #symlink-target
#= P2 to-file symlink -"a" in #symlink-target
#= P2 to-file +1 "a\n" in
#= P2 to-link symlink +"text" in #symlink-target
#= P2 to-link -1 "text\n" in
