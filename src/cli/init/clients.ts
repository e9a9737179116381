/** The supported database drivers. Each name is the name of knex's client and the name of the npm package. */
export const clients = ['better-sqlite3', 'pg', 'mysql2'] as const

export type Client = (typeof clients)[number]

/** Returns the driver; null if doorward does not support the named client. */
export function providerClientOf(named: unknown): Client | null {
  const name = named === 'postgres' || named === 'postgresql' ? 'pg' : named // aliases of knex
  return clients.find((client) => client === name) ?? null
}
