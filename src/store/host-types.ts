/**
 * What you tell the compiler about your own data: `createAuthRouter<{ fields: { firstName: string } }>({ … })`. The fields are those of
 * `KnexStoreOptions.users.fields`; their types are yours to state, and nothing compares them with the columns. The claims are those that
 * `accessTokenClaims` returns. `delivery: 'session'` belongs to `tokenDelivery: 'session'`: the login verbs of the service then return
 * server-side sessions.
 */
export interface HostTypes {
  fields?: object
  claims?: object
  delivery?: 'session'
}

/** A record whose `fields` have the types that the host stated. Without any it is the record as it is. */
export type WithFields<Shape extends { fields?: unknown }, Host extends HostTypes> = Host extends { fields: infer Fields extends object }
  ? Omit<Shape, 'fields'> & { readonly fields: Readonly<Fields> }
  : Shape
