import { createElement, type ReactElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect, test } from 'vitest'
import { type AuthClient, createAuthClient } from '../../src/client/client'
import type { User } from '../../src/client/operations'
import { AuthProvider, RequireAuth, SignedIn, SignedOut, useAuth, useUser } from '../../src/client/react'

const ada: User = {
  id: '1',
  email: 'ada@example.test',
  name: null,
  is_active: true,
  is_admin: false,
  created_at: '2026-03-01T00:00:00.000Z',
  updated_at: '2026-03-01T00:00:00.000Z',
  last_login_at: null,
  mfa_enabled: false,
}

function Page(): ReactElement {
  const { status, auth } = useAuth()
  const user = useUser()
  return createElement(
    'p',
    null,
    `${status} ${user?.email ?? 'nobody'} ${typeof auth.logOut}; `,
    createElement(SignedIn, { loading: 'wait' }, 'in'),
    '; ',
    createElement(SignedOut, null, 'out'),
    '; ',
    createElement(RequireAuth, { fallback: 'form', loading: 'wait' }, 'secret'),
  )
}

const render = (initialUser?: User | null, client: AuthClient = createAuthClient({ baseUrl: '/auth' })) =>
  renderToString(createElement(AuthProvider, { client, initialUser }, createElement(Page))).replace(/<!-- -->|<\/?p>/g, '')

test('a server renders loading, and sends nothing', () => {
  expect(render()).toBe('loading nobody function; wait; ; wait')
})

test('a server renders the person whom the page names, or nobody', () => {
  expect(render(ada)).toBe('signed-in ada@example.test function; in; ; secret')
  expect(render(null)).toBe('signed-out nobody function; ; out; form')
})

test('a hook outside of the provider says what is missing', () => {
  expect(() => renderToString(createElement(Page))).toThrow(/AuthProvider/)
})
