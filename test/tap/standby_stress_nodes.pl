# As standby_stress.pl, with the trees of primary and standby on the same memory nodes.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

local $ENV{SMART_STRESS_NODES} = 1;
do "$FindBin::RealBin/standby_stress.pl" or die $@ || $!;
