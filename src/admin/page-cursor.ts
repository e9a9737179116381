import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { ValidationError } from '../errors'
import { isUnderAny, type KeyList } from '../keys'
import type { UserFilter } from '../store/auth-store'

/** Where a list goes on: the store's own word for it, signed together with the filters it belongs to. */
export function sealCursor(key: KeyObject, filters: readonly UserFilter[], position: string): string {
  const signature = createHmac('sha256', key)
    .update(JSON.stringify([canonical(filters), position]))
    .digest('base64url')
  return `${Buffer.from(position).toString('base64url')}.${signature}`
}

/** @throws ValidationError for one that was not issued here, or for other filters */
export function openCursor(keys: KeyList, filters: readonly UserFilter[], cursor: string): string {
  const position = Buffer.from(cursor.split('.', 1)[0] ?? '', 'base64url').toString()
  // Sealed again and compared as a whole: there is one spelling of each cursor.
  if (isUnderAny(keys, (key) => isSameText(sealCursor(key, filters, position), cursor))) return position
  throw new ValidationError({ details: { errors: [{ path: 'cursor', rule: 'any.invalid' }] } })
}

function isSameText(real: string, shown: string): boolean {
  const [one, other] = [Buffer.from(real), Buffer.from(shown)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** The same filters in another order are the same list. */
function canonical(filters: readonly UserFilter[]): string[] {
  return filters.map((filter) => JSON.stringify([filter.field, filter.operator, filter.value])).sort()
}
