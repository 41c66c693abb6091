// What broken rules do to a slot map.
#include "experts/protocol_mutations.h"

#include "experts/slot_index.h"

namespace sluice::mutated {
namespace {

template <class Body>
void launch(Stream& stream, const char* name, const SlotMapView& map, Body body) {
  stream.launch({.name = name, .reads = {map.range()}, .writes = {map.range()}},
                [map, body](const HostContext&) {
                  body(*map.header);
                  slot_index::rebuild(map);
                });
}

}  // namespace

void begin_region_still_mapped(Stream& stream, const SlotMapView& map, int32_t region_slots) {
  launch(stream, "begin region", map, [=](SlotMapHeader& header) {
    header.floor = region_slots;
    header.region_running = 1;
    for (int32_t slot = region_slots; slot < header.slots; ++slot) map.listed[slot] = map.owner_of[slot] >= 0;
  });
}

void end_region_still_mapped(Stream& stream, const SlotMapView& map) {
  launch(stream, "end region", map, [=](SlotMapHeader& header) {
    for (int32_t slot = 0; slot < header.slots; ++slot) map.listed[slot] = 0;
    header.floor = 0;
    header.region_running = 0;
  });
}

void unlist_all(Stream& stream, const SlotMapView& map) {
  launch(stream, "unlist", map, [=](const SlotMapHeader& header) {
    for (int32_t slot = 0; slot < header.slots; ++slot) map.listed[slot] = 0;
  });
}

void forget_running_call(Stream& stream, const SlotMapView& map) {
  launch(stream, "forget the call", map, [](SlotMapHeader& header) { ++header.clock; });
}

}  // namespace sluice::mutated
