import { environmentVariable, type Settings, type SettingsInput } from './settings'
import { settingNames } from './settings-schema'

/**
 * Reads the variables of docs/configuration.md, all as text: `resolveSettings` converts and checks. A variable that is
 * missing or empty is unset; others are not looked at.
 */
export function settingsFromEnv(env: Readonly<Record<string, string | undefined>> = process.env): SettingsInput {
  const given: Partial<Record<keyof Settings, string>> = {}
  for (const setting of settingNames) {
    const value = env[environmentVariable(setting)]
    if (value) given[setting] = value
  }
  return given
}
