/** The supported database drivers. Each is both the name of knex's client and of the package. */
export const clients = ['better-sqlite3', 'pg', 'mysql2'] as const

export type Client = (typeof clients)[number]

/** Returns null if doorward does not support it. */
export function clientOf(named: unknown): Client | null {
  const name = named === 'postgres' || named === 'postgresql' ? 'pg' : named // aliases of knex
  return clients.find((client) => client === name) ?? null
}
