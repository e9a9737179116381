/** The transaction of a login, without its hash: BENCH_PREPARED=0 sends the same statements without names. */
import { createHash, randomUUID } from 'node:crypto'
import express from 'express'
import { openKnex } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const { createAuthTables, createKnexStore } = await import('../../../dist/index.mjs')

const atOnce = 8
/** So many that none has as many sessions as would make a login end some. */
const accounts = 1_000
const mostSessions = 100
const day = 86_400_000

function newUser() {
  const at = new Date()
  return {
    isActive: true,
    createdAt: at,
    updatedAt: at,
    email: `${randomUUID()}@example.test`,
    hashedPassword: '$argon2id$none',
    isAdmin: false,
    lastLoginAt: null,
    name: 'Ana',
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: at,
    passwordSetAt: at,
  }
}

function newSession(userId, at) {
  return {
    id: randomUUID(),
    userId,
    kind: 'tokens',
    tokenHash: createHash('sha256').update(randomUUID()).digest('hex'),
    generation: 0,
    rotatedAt: null,
    amr: 'pwd',
    authenticatedAt: at,
    isPersistent: true,
    ip: '2001:db8::1',
    userAgent: 'Agent/1.0',
    provider: null,
    providerSid: null,
    createdAt: at,
    lastSeenAt: at,
    expiresAt: new Date(at.getTime() + day),
    endsAt: new Date(at.getTime() + 30 * day),
    revokedAt: null,
  }
}

await serve(async () => {
  const knex = openKnex()
  await createAuthTables(knex)
  const store = createKnexStore({ knex, preparedStatements: process.env.BENCH_PREPARED !== '0' })
  const users = []
  while (users.length < accounts) users.push(await store.users.insert(newUser()))
  let next = 0

  const logIn = () => {
    const [user, at] = [users[next++ % accounts], new Date()]
    const work = async (inside) => {
      if (!(await inside.users.recordLogin(user, at))) throw new Error('the login was refused')
      await inside.sessions.insertWithin(newSession(user.id, at), mostSessions)
    }
    return store.transaction(work, { deadlineMs: 30_000 })
  }

  return express().get('/logins', async (req, res) => {
    const end = performance.now() + Number(req.query.milliseconds)
    const [begun, before] = [performance.now(), process.cpuUsage()]
    let count = 0
    const loop = async () => {
      for (; performance.now() < end; count++) await logIn()
    }
    await Promise.all(Array.from({ length: atOnce }, loop))
    const { user, system } = process.cpuUsage(before)
    res.json({ perSecond: (1000 * count) / (performance.now() - begun), cpuMicros: (user + system) / count })
  })
})
