/* embed SYMBOL OUT IN...: a C array of the inputs' bytes, one after another. */
#include <stdio.h>
int main(int argc, char **argv) {
  if (argc < 4) return 2;
  FILE *out = fopen(argv[2], "w");
  if (!out) {
    perror(argv[2]);
    return 1;
  }
  fprintf(out,
          "#include <stddef.h>\nextern const unsigned char %s[];\nextern const size_t "
          "%s_len;\nconst unsigned char %s[] = {",
          argv[1], argv[1], argv[1]);
  size_t n = 0;
  for (int i = 3; i < argc; i++) {
    FILE *in = fopen(argv[i], "rb");
    if (!in) {
      perror(argv[i]);
      return 1;
    }
    for (int c; (c = getc(in)) != EOF; n++) fprintf(out, "%s%d,", n % 20 ? "" : "\n", c);
    fclose(in);
  }
  fprintf(out, "\n};\nconst size_t %s_len = %zu;\n", argv[1], n);
  return fclose(out) ? 1 : 0;
}
