/**
 * The types of your own data: `createAuthRouter<{ fields: { firstName: string } }>({ … })`. `fields` are the types of the fields in
 * `KnexStoreOptions.users.fields`. doorward does not compare these types with the columns. `claims` are the types of the claims that
 * `accessTokenClaims` returns. If the setting `tokenDelivery` is `'session'`, set `delivery: 'session'` too. Then the login methods of the
 * service return server-side sessions.
 */
export interface HostTypes {
  fields?: object
  claims?: object
  delivery?: 'session'
}

/** The record, whose `fields` have the types that the host declared. If the host declared no types, the record is unchanged. */
export type WithFields<Shape extends { fields?: unknown }, Host extends HostTypes> = Host extends { fields: infer Fields extends object }
  ? Omit<Shape, 'fields'> & { readonly fields: Readonly<Fields> }
  : Shape
