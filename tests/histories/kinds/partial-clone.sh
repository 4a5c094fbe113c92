# Contents were left out when the repository was cloned: that is said, and nothing is fetched.
start
lines 1 3 >a.txt
base
echo more >>a.txt
by P1
cd ..
mv repo whole
git -C whole config uploadpack.allowFilter true
git clone -q --bare --filter=blob:none --no-local "file://$PWD/whole" repo
git -C repo update-ref refs/tags/base "$(git -C whole rev-parse base)"
#! is missing in
#! partial
