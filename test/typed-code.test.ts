import { expect, test } from 'vitest'
import { readTypedCode } from '../src/core/opaque-token'

test('the digits of every numbering system of this Node have their values', () => {
  const systems = Intl.supportedValuesOf('numberingSystem').filter((system) => {
    const digits = new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(1_234_567_890)
    return /^\p{Nd}{10}$/u.test(digits)
  })
  expect(systems.length).toBeGreaterThan(60)
  for (const system of systems) {
    const typed = new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(1_234_567_890)
    expect(readTypedCode(typed), system).toBe('1234567890')
  }
})
