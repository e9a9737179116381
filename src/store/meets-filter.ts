import { asciiLowerCase } from '../core/ascii-lower-case'
import type { UserFilter, UserFilterValue, UserRecord } from './auth-store'

/** Checks what a database returned. */
export function meetsFilter(user: Partial<UserRecord>, filter: UserFilter): boolean {
  const held = user[filter.field] ?? null
  if (filter.operator === 'isnull') return (held === null) === filter.value
  return held !== null && meets(held, filter)
}

function meets(held: UserFilterValue, filter: Exclude<UserFilter, { operator: 'isnull' }>): boolean {
  const order = (value: UserFilterValue) => compare(held, value)
  switch (filter.operator) {
    case 'eq':
      return order(filter.value) === 0
    case 'ne':
      return order(filter.value) !== 0
    case 'gt':
      return order(filter.value) > 0
    case 'gte':
      return order(filter.value) >= 0
    case 'lt':
      return order(filter.value) < 0
    case 'lte':
      return order(filter.value) <= 0
    case 'in':
      return filter.value.some((value) => order(value) === 0)
    case 'not_in':
      return filter.value.every((value) => order(value) !== 0)
    case 'between':
      return order(filter.value[0]) >= 0 && order(filter.value[1]) <= 0
    default:
      return finds(String(held), filter.operator, filter.value)
  }
}

function finds(held: string, operator: 'contains' | 'icontains' | 'startswith' | 'endswith', value: string): boolean {
  switch (operator) {
    case 'startswith':
      return held.startsWith(value)
    case 'endswith':
      return held.endsWith(value)
    case 'icontains':
      return asciiLowerCase(held).includes(asciiLowerCase(value))
    default:
      return held.includes(value)
  }
}

/** Compares the bytes in UTF-8, because JavaScript's order of UTF-16 is different. */
function compare(one: UserFilterValue, other: UserFilterValue): number {
  if (typeof one === 'string' && typeof other === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other))
  return Number(one) - Number(other)
}
