# Attributes and settings that would hide text, in the repository and beside it.
start
lines 1 3 >a.txt
lines 1 3 >generated.js
base
printf '* -diff -text\na.txt binary\ngenerated.js linguist-generated diff=nothing\n' >.gitattributes
cp .gitattributes .git/info/attributes
git config diff.nothing.textconv true
git config diff.nothing.command true
git config diff.external true
git config diff.noprefix true
git config diff.algorithm patience
git config diff.renames false
git config core.quotePath false
git config diff.orderFile /dev/null
git config diff.suppressBlankEmpty true
git config core.bigFileThreshold 1
echo more >>a.txt
echo more >>generated.js
by P1
#= P1 .gitattributes +1 "* -diff -text\na.txt binary\ngenerated.js linguist-generated diff=nothing\n" in
#= P1 a.txt +4 "more\n" in
#= P1 generated.js +4 "more\n" in
