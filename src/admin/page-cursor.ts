import { createHmac, type KeyObject } from 'node:crypto'
import { constantTimeEqual } from '../core/constant-time-equal'
import { ValidationError } from '../core/errors'
import { isUnderAny, type KeyList } from '../core/keys'
import type { UserFilter } from '../store/auth-store'

/** Returns the cursor of the next page. The cursor is the store's position, with a signature over the position and the list's filters. */
export function sealCursor(key: KeyObject, filters: readonly UserFilter[], position: string): string {
  const signature = createHmac('sha256', key)
    .update(JSON.stringify([canonical(filters), position]))
    .digest('base64url')
  return `${Buffer.from(position).toString('base64url')}.${signature}`
}

/**
 * Returns the position of a cursor.
 * @throws ValidationError for a cursor that doorward did not issue, and for a cursor that was issued for other filters
 */
export function openCursor(keys: KeyList, filters: readonly UserFilter[], cursor: string): string {
  const position = Buffer.from(cursor.split('.', 1)[0] ?? '', 'base64url').toString()
  // Seals the position again and compares the whole text, so that each cursor has only one valid spelling.
  if (isUnderAny(keys, (key) => constantTimeEqual(sealCursor(key, filters, position), cursor))) return position
  throw new ValidationError({ details: { errors: [{ path: 'cursor', rule: 'any.invalid' }] } })
}

/** Sorts the filters, because their order does not change the list. */
function canonical(filters: readonly UserFilter[]): string[] {
  return filters.map((filter) => JSON.stringify([filter.field, filter.operator, filter.value])).sort()
}
