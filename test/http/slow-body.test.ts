import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { RequestHandler } from 'express'
import { afterEach, expect, test, vi } from 'vitest'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
afterEach(() => void vi.useRealTimers())

/** The clock is ours; sockets and the database take their own time. */
const waitingForSockets = { timeout: 15_000, interval: 5 }

test('X03: a body that is announced and never comes is refused, and is no failure of ours', async () => {
  const { app, logs } = await start()
  const server = createServer(app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const before = logs.entries.length
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1') // a TCP server's address is never a string
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString()
  })
  socket.write('POST /auth/refresh HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"r')

  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(2_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(text).toContain('incomplete')
  }, waitingForSockets)

  expect(text).toMatch(/^HTTP\/1\.1 422 /)
  expect(logs.entries.slice(before)).toEqual([])
  socket.destroy()
  server.closeAllConnections()
  server.close()
})

test('a client that is gone before its body is read is no failure of ours', async () => {
  let ended = (_status: number): void => undefined
  const status = new Promise<number>((resolve) => {
    ended = resolve
  })
  const untilGone: RequestHandler = (req, res, next) => {
    res.end = () => {
      ended(res.statusCode)
      return res
    }
    req.once('close', () => next())
  }
  const { app, logs } = await start({ before: [untilGone] })
  const server = createServer(app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const before = logs.entries.length
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1') // a TCP server's address is never a string
  const body = '{"refresh_token":"r"}'
  socket.write(`POST /auth/refresh HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await once(server, 'request')
  socket.destroy()

  expect(await status).toBe(422)
  expect(logs.entries.slice(before)).toEqual([])
  server.close()
})
