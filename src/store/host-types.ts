/**
 * The types of your own data: `createAuthRouter<{ fields: { firstName: string } }>({ … })`. `fields` are those of
 * `KnexStoreOptions.users.fields`. You state their types, and nothing compares them with the columns. `claims` are the claims that
 * `accessTokenClaims` returns. Set `delivery: 'session'` together with `tokenDelivery: 'session'`: then the login methods of the service
 * return server-side sessions.
 */
export interface HostTypes {
  fields?: object
  claims?: object
  delivery?: 'session'
}

/** The record, with `fields` of the types that the host stated. Without stated types it is the record unchanged. */
export type WithFields<Shape extends { fields?: unknown }, Host extends HostTypes> = Host extends { fields: infer Fields extends object }
  ? Omit<Shape, 'fields'> & { readonly fields: Readonly<Fields> }
  : Shape
