// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "control/telemetry/links.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/topology.h"

namespace gradplane::telemetry {
namespace {

// Lengths are pixels.
constexpr double kMinRadius = 250;
constexpr double kArcOfPlace = 100;  // length of the arc for each place
constexpr double kMargin = 110;      // around the circle, for names
constexpr double kPlaceRadius = 7;
constexpr double kGap = 12;  // between a place and the ends of the lines to it
constexpr double kLinkBend = 16;
constexpr double kTreeBend = 11;  // added for each tree
constexpr double kNameDistance = 20;
constexpr double kLegendMargin = 20;  // after its longest line
// A letter of 12 pixels in DejaVu Sans is 5.8 wide in such lines, and 6.9 in bold.
constexpr double kLetter = 7;
constexpr double kBoldLetter = 8;
constexpr double kLine = 18;
constexpr std::size_t kMaxLabels = 64;       // labels of links; more would hide the picture
constexpr std::size_t kMaxLegendLinks = 48;  // links in the legend
constexpr double kPercent = 100;
constexpr double kLabelAt = 0.3;  // place of a label on its link: in the middle many links cross
constexpr double kPale = 0.25;    // opacity of a link with confidence 0

struct Point {
  double x = 0;
  double y = 0;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

struct Stroke {
  std::string_view color;
  double width = 1;
  double opacity = 1;
  bool dashed = false;
};

/// A curve from one place to another. It bends to its right, so the curve back is another one.
struct Curve {
  Point from;
  Point control;
  Point to;

  /// The point at this part of the curve, from 0 to 1.
  Point at(double part) const {
    const double left = 1 - part;
    const double a = left * left, b = 2 * left * part, c = part * part;
    return {a * from.x + b * control.x + c * to.x, a * from.y + b * control.y + c * to.y};
  }
};

Curve curve_between(Point a, Point b, double bend) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length = std::max(std::hypot(dx, dy), 1.0);
  const Point along{dx / length, dy / length};
  const Point right{-along.y, along.x};
  const auto end = [&](Point p, double sign) {
    return Point{p.x + sign * kGap * along.x + right.x * bend / 3,
                 p.y + sign * kGap * along.y + right.y * bend / 3};
  };
  return {end(a, 1),
          {(a.x + b.x) / 2 + 2 * bend * right.x, (a.y + b.y) / 2 + 2 * bend * right.y},
          end(b, -1)};
}

class Picture {
 public:
  explicit Picture(const Topology& topology) : topology_(topology) {
    const auto places = static_cast<double>(std::max<std::size_t>(topology.nodes.size(), 1));
    radius_ = std::max(kMinRadius, places * kArcOfPlace / (2 * std::numbers::pi));
    const double center = radius_ + kMargin;
    for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(n) / places - std::numbers::pi / 2;
      place_of_.emplace(topology.nodes[n].name, Point{center + radius_ * std::cos(angle),
                                                      center + radius_ * std::sin(angle)});
    }
  }

  std::string draw() {
    add_links();
    add_trees();
    add_rates();
    add_places();
    add_legend();
    const double side = 2 * (radius_ + kMargin);
    const double width = side + legend_width_ + kLegendMargin;
    const double height = std::max(side, legend_y_ + kLine);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<title>{2}</title>\n{3}"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{4}</svg>\n",
        width, height, escaped("gradplane topology, as node " + topology_.node + " knows it"),
        arrows(), body_);
  }

 private:
  /// Arrow heads, one for each colour, because in SVG 1.1 they cannot inherit the line's colour.
  static std::string arrows() {
    std::string text = "<defs>\n";
    const auto add = [&text](std::string_view color) {
      text += fmt::format(
          "<marker id=\"a{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
          "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
          "<path d=\"M0 0L8 4L0 8z\" fill=\"{}\"/></marker>\n",
          color.substr(1), color);
    };
    add(kLinkColor);
    for (const std::string_view color : kTreeColors) add(color);
    return text + "</defs>\n";
  }

  const Point* find(const std::string& name) const {
    const auto at = place_of_.find(name);
    return at == place_of_.end() ? nullptr : &at->second;
  }

  /// `title` is shown where the pointer rests on the curve.
  void add_curve(const Curve& c, const Stroke& stroke, const std::string& title = {}) {
    body_ += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"{}\" stroke-opacity=\"{:.2f}\"{} marker-end=\"url(#a{})\">{}</path>\n",
        c.from.x, c.from.y, c.control.x, c.control.y, c.to.x, c.to.y, stroke.color, stroke.width,
        stroke.opacity, stroke.dashed ? " stroke-dasharray=\"5 3\"" : "", stroke.color.substr(1),
        title.empty() ? "" : "<title>" + escaped(title) + "</title>");
  }

  void add_text(Point at, const std::string& text, std::string_view more = {}) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", at.x, at.y, more,
                         escaped(text));
  }

  void add_links() {
    for (const TopologyLink& link : topology_.links) {
      const Point* from = find(link.measured.node);
      const Point* to = find(link.to);
      if (from == nullptr || to == nullptr || from == to) continue;
      const Curve curve = curve_between(*from, *to, kLinkBend);
      add_curve(curve,
                {.color = kLinkColor,
                 .width = 1.5,
                 .opacity = kPale + (1 - kPale) * link.measured.rate_confidence_percent / kPercent,
                 .dashed = link.measured.rate_is_lower_bound},
                text_of(link));
    }
  }

  /// Adds the rates of links, above all lines. The legend has what else is known of links.
  void add_rates() {
    if (topology_.links.size() > kMaxLabels) return;
    for (const TopologyLink& link : topology_.links) {
      const Point* from = find(link.measured.node);
      const Point* to = find(link.to);
      if (from == nullptr || to == nullptr || from == to) continue;
      if (link.measured.rate_confidence_percent == 0) continue;
      const std::string rate = rate_text(link.measured.rate_bits_per_second);
      add_text(curve_between(*from, *to, kLinkBend).at(kLabelAt),
               link.measured.rate_is_lower_bound ? "> " + rate : rate,
               " text-anchor=\"middle\" font-size=\"9\" fill=\"#444444\" stroke=\"#ffffff\" "
               "stroke-width=\"3\" paint-order=\"stroke\"");
    }
  }

  void add_trees() {
    std::size_t number = 0;
    for (const TopologyJob& job : topology_.jobs) {
      for (const TopologyTree& tree : job.trees) {
        const std::size_t color = number++ % kTreeColors.size();
        for (const TopologyEdge& edge : tree.edges) {
          const Point* from = find(edge.from);
          const Point* to = find(edge.to);
          if (from == nullptr || to == nullptr || from == to) continue;
          const double bend = kLinkBend + kTreeBend * static_cast<double>(color + 1);
          add_curve(curve_between(*from, *to, bend),
                    {.color = kTreeColors[color], .width = 2 + 2 * share_of(job, tree)});
        }
      }
    }
  }

  void add_places() {
    const double center = radius_ + kMargin;
    for (const TopologyNode& node : topology_.nodes) {
      const Point at = place_of_.at(node.name);
      body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"#333333\"/>\n",
                           at.x, at.y, kPlaceRadius);
      const double out = (radius_ + kNameDistance) / radius_;
      const Point name{center + (at.x - center) * out, center + (at.y - center) * out + 4};
      const double side = (at.x - center) / radius_;
      const char* anchor = side > 0.3 ? "start" : side < -0.3 ? "end" : "middle";
      add_text(name, node.site.empty() ? node.name : node.name + " (" + node.site + ")",
               fmt::format(" text-anchor=\"{}\" font-weight=\"bold\" stroke=\"#ffffff\" "
                           "stroke-width=\"3\" paint-order=\"stroke\"",
                           anchor));
    }
  }

  void add_line(const std::string& text, std::string_view more = {}, double indent = 0) {
    add_text({2 * (radius_ + kMargin) + indent, legend_y_}, text, more);
    legend_y_ += kLine;
    const double letter = more.empty() ? kLetter : kBoldLetter;
    legend_width_ = std::max(legend_width_, indent + static_cast<double>(text.size()) * letter);
  }

  void add_sample(const Stroke& stroke) {
    const double x = 2 * (radius_ + kMargin);
    add_curve({{x, legend_y_ - 4}, {x + 12, legend_y_ - 4}, {x + 24, legend_y_ - 4}}, stroke);
  }

  void add_legend() {
    constexpr std::string_view kBold = " font-weight=\"bold\"";
    constexpr double kIndent = 32;
    add_line("as node " + topology_.node + " knows it", kBold);
    std::size_t number = 0;
    for (const TopologyJob& job : topology_.jobs) {
      add_line(
          fmt::format("job {:08x} {}: {}, epoch {}", job.id, job.label, job.plan_kind, job.epoch),
          kBold);
      for (const TopologyTree& tree : job.trees) {
        add_sample({.color = kTreeColors[number++ % kTreeColors.size()], .width = 3});
        add_line(
            fmt::format("{} of the blocks, root {}", percent_text(share_of(job, tree)), tree.root),
            {}, kIndent);
      }
    }
    add_line("measured links", kBold);
    add_sample({.color = kLinkColor, .width = 1.5});
    add_line("rate; the paler, the less sure", {}, kIndent);
    add_sample({.color = kLinkColor, .width = 1.5, .dashed = true});
    add_line("at least this rate (>)", {}, kIndent);
    const std::size_t named = std::min(topology_.links.size(), kMaxLegendLinks);
    for (std::size_t l = 0; l < named; ++l) add_line(text_of(topology_.links[l]));
    const std::size_t others = topology_.links.size() - named + topology_.links_omitted;
    if (others > 0)
      add_line(fmt::format("and {} more, each of which names itself under the pointer", others));
  }

  static std::string text_of(const TopologyLink& link) {
    const std::string trust = link_trust_text(link.measured);
    return fmt::format("{} > {}: {}{}", link.measured.node, link.to, link_label(link.measured),
                       trust.empty() ? "" : " (" + trust + ")");
  }

  const Topology& topology_;
  double radius_ = 0;
  double legend_y_ = kMargin / 2;
  double legend_width_ = 0;
  std::map<std::string, Point> place_of_;
  std::string body_;
};

}  // namespace

std::string topology_svg(const Topology& topology) {
  return Picture(topology).draw();
}

}  // namespace gradplane::telemetry
