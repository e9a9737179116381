/** The other process of key-rotation.test.ts: an API that has the address of the issuer's keys, HTTP, and nothing else. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createGuards, getAuth } from '../../src'
import { serveTasks } from '../support/two-processes'

/** Start with a key set, or move the clock. */
export type Task = { jwksUri: string } | { advance: number }
/** The API's port. */
export type Answer = number

const begin = Date.parse('2026-03-01T12:00:00.000Z')
let elapsed = 0
let port = 0

serveTasks<Task, Answer>(() => async (task) => {
  if ('advance' in task) elapsed += task.advance * 1000
  else port = await listen(task.jwksUri)
  return port
})

async function listen(jwksUri: string): Promise<number> {
  const silent = { info() {}, warn() {}, error() {} }
  const guards = createGuards({ settings: { jwksUri }, now: () => new Date(begin + elapsed), logger: silent })
  const app = express().get('/api', guards.requireAuth(), (req, res) => void res.json({ sub: getAuth(req).sub }))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port // a TCP server's address is never a string
}
