/** The root module of the applications here: what is in it, they say where they start. */
// eslint-disable-next-line typescript/no-extraneous-class -- a Nest module is one
export class AppModule {}
