/* The version of Holdback, as --version and GetServer tell it. */
#ifndef HB_BASE_VERSION_H
#define HB_BASE_VERSION_H

#define HB_VERSION_TEXT "0.1.0"

#endif
