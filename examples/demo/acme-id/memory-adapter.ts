import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'

interface Entry {
  payload: AdapterPayload
  expiresAt: number
}

/** Stores Acme ID's sessions, grants and codes in the memory of this process. */
export function memoryAdapter(): AdapterFactory {
  const entries = new Map<string, Entry>()
  return (model) => adapterOf(model, entries)
}

function adapterOf(model: string, entries: Map<string, Entry>): Adapter {
  const keyOf = (id: string) => `${model}:${id}`
  const isOurs = (key: string) => key.startsWith(`${model}:`)

  const find = (id: string) => {
    const entry = entries.get(keyOf(id))
    return entry && entry.expiresAt > Date.now() ? entry.payload : undefined
  }

  const findBy = (field: 'uid' | 'userCode', value: string) => {
    for (const [key, { payload, expiresAt }] of entries) {
      if (isOurs(key) && payload[field] === value && expiresAt > Date.now()) return payload
    }
    return undefined
  }

  return {
    async upsert(id, payload, expiresIn) {
      entries.set(keyOf(id), { payload, expiresAt: expiresIn ? Date.now() + expiresIn * 1000 : Number.POSITIVE_INFINITY })
    },
    async find(id) {
      return find(id)
    },
    async findByUid(uid) {
      return findBy('uid', uid)
    },
    async findByUserCode(userCode) {
      return findBy('userCode', userCode)
    },
    async consume(id) {
      const payload = find(id)
      if (payload) payload.consumed = Math.floor(Date.now() / 1000)
    },
    async destroy(id) {
      entries.delete(keyOf(id))
    },
    async revokeByGrantId(grantId) {
      for (const [key, { payload }] of entries) if (isOurs(key) && payload.grantId === grantId) entries.delete(key)
    },
  }
}
