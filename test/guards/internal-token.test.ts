import { randomBytes } from 'node:crypto'
import express from 'express'
import { expect, test } from 'vitest'
import { ConfigurationError, requireInternalToken } from '../../src'
import { type RawRequest, sendRaw } from '../support/send-raw'

const [current, next, stranger] = [0, 1, 2].map(() => randomBytes(32).toString('base64url')) as [string, string, string] // three of three

function ask(token: string | readonly string[], headers: RawRequest['headers'] = {}) {
  const app = express()
  app.get('/internal', requireInternalToken({ token }), (_req, res) => void res.json({ reached: true }))
  return sendRaw(app, { method: 'GET', path: '/internal', headers })
}

test('S30 the token in X-Token lets through, and while it is replaced either of two', async () => {
  expect((await ask(current, { 'X-Token': current })).status).toBe(200)
  for (const token of [current, next]) expect((await ask([current, next], { 'x-token': token })).status).toBe(200)
})

test('S30 T05 everything else is 401 UNAUTHORIZED in the envelope, whatever its length, and says nothing of the token', async () => {
  const wrong: RawRequest['headers'][] = [
    {},
    { 'X-Token': '' },
    { 'X-Token': stranger },
    { 'X-Token': current.slice(0, -1) },
    { 'X-Token': `${current}x` },
    { 'X-Token': 'x'.repeat(8000) },
    { 'X-Token': current.toUpperCase() },
    { 'X-Token': [current, current] },
    { 'X-Token': [stranger, current] },
    { 'X-Token': `${current}, ${current}` },
    { Authorization: `Bearer ${current}` },
    { Cookie: `X-Token=${current}` },
  ]
  for (const headers of wrong) {
    const answer = await ask([current, next], headers)

    expect([answer.status, answer.body], JSON.stringify(headers)).toEqual([
      401,
      { detail: 'Authentication is required.', code: 'UNAUTHORIZED', details: {} },
    ])
    expect(answer.headers['www-authenticate']).toBe('X-Token')
  }
})

test('a refusal speaks the caller’s language and names no other origin (R-123)', async () => {
  const answer = await ask(current, { 'Accept-Language': 'pt-BR', Origin: 'https://elsewhere.example' })

  expect(answer.body['detail']).toBe('É preciso se autenticar.')
  expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
})

test('S30 a token that protects nothing, or that no header can carry, is refused when the guard is made, without being repeated', () => {
  const weak: unknown[] = ['', 'x'.repeat(31), 'changeme'.repeat(5), [], [current, ''], undefined, null, 42, `${current}é`, ` ${current}`]
  for (const token of weak) {
    const make = () => requireInternalToken({ token: token as string }) // a host without types

    expect(make, String(token)).toThrow(ConfigurationError)
    expect(make).toThrow(/^requireInternalToken: token must/)
    expect(make).not.toThrow(current)
  }
  expect(() => requireInternalToken(undefined as never)).toThrow('requireInternalToken() needs options')
  expect(() => requireInternalToken({ tokens: [current] } as never)).toThrow('the nearest known one is token')
})
