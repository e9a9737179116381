import type { Knex } from 'knex'
import type { RefreshTokenRecord, Rotation, UserRecord } from '../auth-store'
import type { Tables } from './default-tables'

/** Unspent, unrevoked and unexpired. */
export function rotatable(query: Knex.QueryBuilder, { refreshTokens }: Tables, { tokenHash, at }: Rotation): Knex.QueryBuilder {
  return query
    .where(refreshTokens.where({ tokenHash, usedAt: null, revokedAt: null }))
    .where(refreshTokens.column('expiresAt'), '>', refreshTokens.value('expiresAt', at))
    .where(refreshTokens.column('familyExpiresAt'), '>', refreshTokens.value('familyExpiresAt', at))
}

/** What a child has of its parent, whatever types the columns have. */
export const inherited = ['userId', 'familyId', 'amr', 'familyExpiresAt'] as const satisfies readonly (keyof RefreshTokenRecord)[]

/** What the database is asked about the child, and about its user: `Rotated`, and what tells a child from its parent. */
export const answered = ['userId', 'amr', 'expiresAt', 'usedAt'] as const satisfies readonly (keyof RefreshTokenRecord)[]
export const answeredOfUser = ['id', 'email'] as const satisfies readonly (keyof UserRecord)[]

/** As many places as there are values. */
export function places(values: readonly unknown[], place: '?' | '??' = '?'): string {
  return values.map(() => place).join(', ')
}
