# bmake reads this file; everything is in common/build.mk.
SRCTOP = ${.CURDIR}
.include "common/build.mk"
.for d in ${DEPS}
.  if exists(${d})
.    include "${d}"
.  endif
.endfor
